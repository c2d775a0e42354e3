/**
 * Lets a command whose reader has gone away (`hearth config docs | head`) go on to its end and to its own exit code, as
 * if it had been read: there is nobody to whom more could be said.
 */
export function allowClosedPipes(streams: readonly NodeJS.WritableStream[]): void {
  for (const stream of streams) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}
