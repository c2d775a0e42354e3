import type { Socket } from 'node:net';
import { createInterface } from 'node:readline/promises';
import type { LoginAttempts } from './login-attempts.ts';

/** Prompts a telnet client for its user name and password. @returns whether the login is admitted */
export async function telnetLogin(socket: Socket, attempts: LoginAttempts): Promise<boolean> {
  const lines = createInterface({ input: socket, output: socket });
  try {
    const username = await lines.question('Username: ');
    const password = await lines.question('Password: ');
    lines.close();
    if (attempts.isAdmitted({ username, password }, socket.remoteAddress ?? '')) return true;
    socket.end('Refused.\r\n');
  } catch {
    // The connection was closed before the client answered.
    socket.destroy();
  }
  return false;
}
