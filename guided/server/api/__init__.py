"""OpenAI's endpoints over a scheduler: FastAPI, and nothing of FastAPI below this package.

* `settings`: what a server is started with; `application`: the endpoints put together; `command`: uvicorn and signals.
* `shapes`: bodies of requests and answers.
* `asking`: from a request to jobs: languages, prompts, limits.
* `reading`: from tokens to content, reasoning and calls.
* `answering`: from jobs to answers and streams; `whole_texts`: samplers and searches.
* `endpoints`: one module each.
* `guarding`: bodies, keys, hosts, logs, metrics, errors.
"""
