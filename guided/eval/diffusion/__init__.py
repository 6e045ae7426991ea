"""`guided eval diffusion`: how well and how fast a denoiser fills canvases, with and without the grammar solved.

Reading order: `tasks` (records to extract, made up, with words that the packaged model never saw), `methods` (laws and
policies by name), `results`, `run`, `report` (the table and the plot of quality against steps).
"""
