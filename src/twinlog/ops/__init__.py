"""Operations on sites: what the file declares compared with what is there, and the steps between."""
