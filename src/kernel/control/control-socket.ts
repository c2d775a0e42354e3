import { chmodSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Logger } from '../observability/index.ts';

/** A command of the control socket. */
export interface ControlCommand {
  readonly name: string;
  /**
   * Runs the command.
   * @param report sends the client a sign of progress
   * @param signal is aborted when the client disconnects
   * @returns the result, which must be JSON
   */
  run(
    parameters: Readonly<Record<string, unknown>>,
    report: (progress: object) => void,
    signal: AbortSignal,
  ): Promise<object>;
}

export interface ControlSocket {
  close(): Promise<void>;
}

/** Returns the path of the socket of the server that uses this SQLite file. */
export const controlPathOf = (databasePath: string): string => `${resolve(databasePath)}-control`;

/**
 * Opens a Unix socket that only the user of the server (and root) can connect to, for commands like `hearth backup`. A
 * client sends one line of JSON, `{ "command": …, … }`, and receives lines with `progress`, and in the end one with
 * `done` or `error`.
 * @returns `undefined` when the socket cannot be opened: the server works without a control socket
 */
export async function openControlSocket(
  path: string,
  commands: readonly ControlCommand[],
  log: Logger,
): Promise<ControlSocket | undefined> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', (error) => log.debug({ err: error }, 'A connection of the control socket failed'));
    socket.once('close', () => sockets.delete(socket));
    serve(socket, commands, log);
  });
  try {
    if (!(await isListening(path))) rmSync(path, { force: true });
    await new Promise<void>((opened, reject) => {
      server.once('error', reject);
      // The socket has these permissions from the moment when it exists, so that no other user can connect to it.
      const mask = process.umask(0o177);
      try {
        server.listen(path, opened);
      } finally {
        process.umask(mask);
      }
    });
    chmodSync(path, 0o600);
  } catch (error) {
    log.warn(
      { err: error, path },
      'The control socket cannot be opened: hearth backup will copy the database without the help of this server',
    );
    return undefined;
  }
  server.unref();
  return {
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

function isListening(path: string): Promise<boolean> {
  return new Promise((answer) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      answer(true);
    });
    socket.once('error', () => answer(false));
  });
}

function serve(socket: Socket, commands: readonly ControlCommand[], log: Logger): void {
  const send = (line: object) => {
    if (!socket.destroyed) socket.write(`${JSON.stringify(line)}\n`);
  };
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  createInterface({ input: socket }).once('line', (line) => {
    void run(line, commands, send, gone.signal)
      .catch((error: unknown) => {
        log.error({ err: error }, 'A command of the control socket failed');
        send({ error: error instanceof Error ? error.message : String(error) });
      })
      .finally(() => socket.end());
  });
}

async function run(
  line: string,
  commands: readonly ControlCommand[],
  send: (line: object) => void,
  signal: AbortSignal,
): Promise<void> {
  const { command: name, ...parameters } = JSON.parse(line) as Record<string, unknown>;
  const command = commands.find((known) => known.name === name);
  if (!command) throw new Error(`the server does not know the command ${JSON.stringify(name)}`);
  send({ done: await command.run(parameters, (progress) => send({ progress }), signal) });
}
