/** Imported before all that looks for programs: those that the machine lacks are fetched. */

process.env["HYPERSCALE_FETCH_SERVERS"] = "1";
