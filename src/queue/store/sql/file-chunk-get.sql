select translate(encode(data, 'base64'), E'\n', '') as data from stored_file_chunks where hash = $1 and chunk = $2::int
