/**
 * The protocol has two spellings: that of the requirement documents (`/_proto`, `/_server`), in which routes are
 * declared, and that of the wider ecosystem (`/_matrix`, `/_synapse`). This module alone knows that there are two.
 */
const spellings = [
  { documents: '/_proto/', ecosystem: '/_matrix/' },
  { documents: '/_server/', ecosystem: '/_synapse/' },
  { documents: '/.well-known/proto/', ecosystem: '/.well-known/matrix/' },
] as const;

/** The URL (path and query, or absolute) in the documents' spelling; unchanged when it is so already. */
export function toDocumentsSpelling(url: string): string {
  const path = url.charCodeAt(0) === 0x2f ? url : withoutAuthority(url);
  for (const { documents, ecosystem } of spellings) {
    if (path.startsWith(ecosystem)) return documents + path.slice(ecosystem.length);
  }
  return path;
}

/** The URL (path and query) in the ecosystem's spelling; unchanged when it is so already. */
export function toEcosystemSpelling(url: string): string {
  for (const { documents, ecosystem } of spellings) {
    if (url.startsWith(documents)) return ecosystem + url.slice(documents.length);
  }
  return url;
}

/** A request line may carry an absolute URL (RFC 9112, section 3.2.2); routing looks at its path only. */
function withoutAuthority(url: string): string {
  const scheme = url.indexOf('://');
  if (scheme === -1) return url;
  const path = url.indexOf('/', scheme + 3);
  return path === -1 ? '/' : url.slice(path);
}
