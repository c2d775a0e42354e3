import { connect } from 'node:net';
import { createInterface } from 'node:readline';

/** No server listens at the control socket, or this user may not connect to it. */
export class NoServer extends Error {
  override name = 'NoServer';
}

/**
 * Sends a command to the running server.
 * @param path path of the server's control socket
 * @param onProgress called with each report of progress before the result
 * @returns the result of the command
 * @throws NoServer when no server listens at `path`, or this user may not connect to it
 * @throws Error with the server's reason when the command fails, and when the server ends before the command is done
 */
export async function sendCommand(
  path: string,
  command: string,
  parameters: object,
  onProgress: (progress: Readonly<Record<string, unknown>>) => void,
): Promise<Readonly<Record<string, unknown>>> {
  const socket = connect(path);
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', (error) => reject(new NoServer(error.message)));
  });
  try {
    socket.write(`${JSON.stringify({ command, ...parameters })}\n`);
    for await (const text of createInterface({ input: socket })) {
      const line = JSON.parse(text) as Record<string, Record<string, unknown>>;
      if (line['error'] !== undefined) throw new Error(String(line['error']));
      if (line['done']) return line['done'];
      onProgress(line['progress'] ?? {});
    }
    throw new Error('the server has ended before the command was done');
  } finally {
    socket.destroy();
  }
}
