/** Imported before anything that needs programs: fetches those that the machine lacks. */

process.env["HYPERSCALE_FETCH_SERVERS"] = "1";
