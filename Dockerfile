# A small image that examines and judges: docker run --rm -v "$PWD:/project" weakspot gate runs/new policy.yaml
# PIP_OPTIONS may name where pip finds builds of torch for the CPU, which are a tenth of the size of those for GPUs.
# Untried: the image itself, where no Docker was at hand. What it copies was installed by its RUN line in an empty environment
# on Linux; tests/integrations/test_action.py checks its instructions.
FROM python:3.12-slim
ARG PIP_OPTIONS=""
WORKDIR /build
COPY pyproject.toml build_readme.py README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir $PIP_OPTIONS . && rm -rf /build
RUN useradd --create-home weakspot
USER weakspot
WORKDIR /project
ENTRYPOINT ["weakspot"]
CMD ["--help"]
