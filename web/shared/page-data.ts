/** Data of a page: JSON, deflated and base64-encoded in an element of the page itself. */

/** Null where the element is empty: the page as it was built, without data. */
export async function readPageData(): Promise<unknown> {
  const text = document.getElementById("data")?.textContent?.trim() ?? "";
  if (text === "") return null;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(inflated).text());
}
