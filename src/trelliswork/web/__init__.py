"""The page and its server: `trelliswork serve MODEL`, an HTTP API, and a client of it.

| file | what is in it |
|---|---|
| `schema.py`, `requests.py`, `problems.py` | what requests may say, checked and described by the same declarations |
| `limits.py`, `guard.py` | how much is served, and to whom: Host, Origin, token, sizes, time |
| `seldom.py` | messages of a kind come once a minute |
| `frames.py`, `worker.py`, `pool.py` | models answer in processes, batched across clients |
| `planning.py` | what a request costs: refused, answered at once, or divided into pieces |
| `describing.py`, `asking.py` | from questions to models, and from answers to JSON |
| `app.py`, `endpoints.py`, `measures.py`, `server.py` | the application, its routes and metrics |
| `teaching/` | unlabelled sentences in a useful order, decisions kept durably, training on them |
| `client.py` | `Client`, which retries |
| `static/` | the page |

Only `client.py` is imported with the package; it needs the standard library alone.
"""

from trelliswork.web.client import Client, ServerError

__all__ = ["Client", "ServerError"]
