/**
 * The protocol has two spellings: that of the requirement documents (`/_proto`, `/_server`), in which routes are
 * declared, and that of the wider ecosystem (`/_matrix`, `/_synapse`). This module alone knows that there are two.
 */
const spellings = [
  { documents: '/_proto/', ecosystem: '/_matrix/' },
  { documents: '/_server/', ecosystem: '/_synapse/' },
  { documents: '/.well-known/proto/', ecosystem: '/.well-known/matrix/' },
] as const;

/** The URL (path and query) in the documents' spelling; unchanged when it is so already. */
export function toDocumentsSpelling(url: string): string {
  for (const { documents, ecosystem } of spellings) {
    if (url.startsWith(ecosystem)) return documents + url.slice(ecosystem.length);
  }
  return url;
}

/** The URL (path and query) in the ecosystem's spelling; unchanged when it is so already. */
export function toEcosystemSpelling(url: string): string {
  for (const { documents, ecosystem } of spellings) {
    if (url.startsWith(documents)) return ecosystem + url.slice(documents.length);
  }
  return url;
}

/** The path (in the documents' spelling) in each of its spellings; most paths outside of the namespaces have one. */
export function bothSpellings(path: string): readonly string[] {
  const ecosystem = toEcosystemSpelling(path);
  return ecosystem === path ? [path] : [path, ecosystem];
}
