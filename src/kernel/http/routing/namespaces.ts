/**
 * Paths have two spellings: that of the requirement documents (`/_proto`, `/_server`), in which routes are declared, and
 * that of the wider ecosystem (`/_matrix`, `/_synapse`). No other module for incoming requests knows both.
 */
const spellings = [
  { documents: '/_proto/', ecosystem: '/_matrix/' },
  { documents: '/_server/', ecosystem: '/_synapse/' },
  { documents: '/.well-known/proto/', ecosystem: '/.well-known/matrix/' },
] as const;

/**
 * Returns the URL (path and query) in the spelling of the requirement documents: `/_proto/…` for
 * `/_matrix/…`.
 */
export function toDocumentsSpelling(url: string): string {
  for (const { documents, ecosystem } of spellings) {
    if (url.startsWith(ecosystem)) return documents + url.slice(ecosystem.length);
  }
  return url;
}

/** Returns the URL (path and query) in the spelling of the wider ecosystem: `/_matrix/…` for `/_proto/…`. */
export function toEcosystemSpelling(url: string): string {
  for (const { documents, ecosystem } of spellings) {
    if (url.startsWith(documents)) return ecosystem + url.slice(documents.length);
  }
  return url;
}

/**
 * Returns the spellings of a path that is declared as in the requirement documents: two for a path below
 * `/_proto`, `/_server` or `/.well-known/proto`, otherwise the path alone.
 */
export function bothSpellings(path: string): readonly string[] {
  const ecosystem = toEcosystemSpelling(path);
  return ecosystem === path ? [path] : [path, ecosystem];
}
