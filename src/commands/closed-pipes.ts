/**
 * Ignores EPIPE errors of output streams, so that a command whose reader has closed the pipe (`hearth config
 * docs | head`) runs to its end and exits with its own code.
 */
export function allowClosedPipes(streams: readonly NodeJS.WritableStream[]): void {
  for (const stream of streams) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}
