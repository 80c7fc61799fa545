# A server of models, for docker run; see docs/deploy.md.
FROM python:3.12-slim AS build
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/trelliswork \
 && /opt/trelliswork/bin/pip install --no-cache-dir -c constraints.txt ".[web]"

FROM python:3.12-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin trelliswork \
 && mkdir /models /teaching /kernels && chown trelliswork /teaching /kernels
COPY --from=build /opt/trelliswork /opt/trelliswork
# Compiled kernels and what is taught are written to volumes; everything else may be read-only.
ENV PATH=/opt/trelliswork/bin:$PATH NUMBA_CACHE_DIR=/kernels PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER trelliswork
VOLUME ["/teaching", "/kernels"]
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 CMD ["python", "-c", \
 "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
# A token must be given: -e TRELLISWORK_TOKEN=...
ENTRYPOINT ["trelliswork", "serve", "--host", "0.0.0.0", "--port", "8000", "--teach", "/teaching"]
CMD ["/models/model"]
