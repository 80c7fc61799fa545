"""The page and its server: `trelliswork serve MODEL`, an HTTP API, and a client of it.

| file | what is in it |
|---|---|
| `requests.py` | how much is served; what requests may say, checked and described by the same declarations |
| `problems.py` | what is wrong with a request, for clients and for the log |
| `guard.py` | to whom is served: Host, Origin, token, sizes, time |
| `frames.py`, `worker.py`, `pool.py` | models answer in processes, batched across clients; large requests in pieces |
| `describing.py`, `asking.py` | from questions to models, and from answers to JSON |
| `app.py`, `endpoints.py`, `measures.py`, `server.py` | the application, its routes and metrics |
| `teaching/` | unlabelled sentences in a useful order, decisions kept durably, training on them |
| `client.py` | `Client`, which retries |
| `static/` | the page |

Only `client.py` is imported with the package; it needs the standard library alone.
"""

from trelliswork.web.client import Client, ServerError

__all__ = ["Client", "ServerError"]
