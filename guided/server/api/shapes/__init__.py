"""What requests and answers look like: pydantic models, from which the published OpenAPI schema is made.

* `base`: what all of them share; `neutral`: fields of OpenAI's that only one value is supported of.
* `extension`: the object ``guided`` of requests; `reports`: that of answers.
* `messages`, `tools`, `formats`: parts that several endpoints have.
* `chat`, `completions`, `responses`, `extras`: the endpoints.
"""
