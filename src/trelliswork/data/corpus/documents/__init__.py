"""Generated documents: `cast` is who they are about, `grammar` what they say, `events` what is read from them."""
