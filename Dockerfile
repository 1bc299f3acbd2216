# Two stages: the first builds the wheel and installs it, the second holds Python and that alone.
# The digest of the tag, as of September 2026; `docker buildx imagetools inspect python:3.13-slim` shows the one of today.
FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN pip install uv==0.13.9
WORKDIR /source
COPY pyproject.toml uv.lock README.md LICENSE CHANGELOG.md ./
COPY pumice pumice
# The locked versions, then the wheel: nothing of the source tree goes into the image.
RUN uv export --locked --no-default-groups --no-emit-project --output-file requirements.txt \
 && uv build --wheel --out-dir dist \
 && python -m venv /opt/pumice \
 && /opt/pumice/bin/pip install --require-hashes -r requirements.txt \
 && /opt/pumice/bin/pip install --no-deps dist/*.whl \
 && /opt/pumice/bin/python -m compileall -q /opt/pumice

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
LABEL org.opencontainers.image.title="Pumice" \
      org.opencontainers.image.description="A Volcano-compatible batch stack for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/pumice /opt/pumice
# Runs with a read-only root file system; only /tmp must be writable.
ENV PATH=/opt/pumice/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["pumice"]
CMD ["--help"]
