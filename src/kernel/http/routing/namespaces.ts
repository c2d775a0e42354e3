/**
 * Paths have two spellings: that of the requirement documents (`/_proto`, `/_server`), in which routes are declared, and
 * that of the wider ecosystem (`/_matrix`, `/_synapse`). No other module for incoming requests knows both.
 */
const spellings = [
  { documents: '/_proto/', ecosystem: '/_matrix/' },
  { documents: '/_server/', ecosystem: '/_synapse/' },
  { documents: '/.well-known/proto/', ecosystem: '/.well-known/matrix/' },
] as const;

/** Returns the URL (path and query) in the documents' spelling. */
export function toDocumentsSpelling(url: string): string {
  for (const { documents, ecosystem } of spellings) {
    if (url.startsWith(ecosystem)) return documents + url.slice(ecosystem.length);
  }
  return url;
}

/** Returns the URL (path and query) in the ecosystem's spelling. */
export function toEcosystemSpelling(url: string): string {
  for (const { documents, ecosystem } of spellings) {
    if (url.startsWith(documents)) return ecosystem + url.slice(documents.length);
  }
  return url;
}

/**
 * Returns the spellings of a path that is in the documents' spelling: two inside the namespaces, one outside.
 */
export function bothSpellings(path: string): readonly string[] {
  const ecosystem = toEcosystemSpelling(path);
  return ecosystem === path ? [path] : [path, ecosystem];
}
