/** Number of chunks in which any body may arrive, however short it is. */
const chunksOfAnyBody = 4_096;

/** Minimum average bytes of the chunks beyond `chunksOfAnyBody`. Nearly all network packets carry more. */
const minBytesPerChunk = 512;

/**
 * Counts the chunks in which a body arrives. Each takes a few microseconds and some hundred bytes of memory, even if it has
 * one byte only, so a bound of bytes alone does not bound the work.
 */
export class ChunkCount {
  #chunks = 0;
  #bytes = 0;

  /** Counts a chunk. @returns whether the body has too many chunks for its length so far */
  exceedsWith(chunk: Uint8Array): boolean {
    this.#chunks++;
    this.#bytes += chunk.length;
    return this.#chunks > chunksOfAnyBody + this.#bytes / minBytesPerChunk;
  }
}
