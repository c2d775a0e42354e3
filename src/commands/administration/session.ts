import { readFileSync } from 'node:fs';
import { ownCommand } from '../../kernel/process/index.ts';
import { type AdminApi, type AdminMethod, adminApiAt } from '../admin-api.ts';
import { CommandFailure } from '../failure.ts';
import { firstLine } from '../first-line.ts';
import type { ServerAddress } from '../local-server.ts';
import { logInWithPassword } from './login.ts';
import { StoredLogins } from './logins.ts';
import { type AdministrationFlags, refusalOf, serverOf, userOfToken } from './server-choice.ts';

/** Calls the admin API as an administrator. */
export interface Session {
  /** The part of local user ids after the colon. */
  readonly serverName: string;
  readonly userId: string;
  /** Sends a request. @returns the JSON of the response @throws CommandFailure with the server's reason for an error */
  call(method: AdminMethod, path: string, body?: object): Promise<Readonly<Record<string, unknown>>>;
  /**
   * Sends a GET request for something that may not exist.
   * @returns the JSON of the response, or `undefined` for a 404 with M_NOT_FOUND
   * @throws CommandFailure with the server's reason for another error
   */
  find(path: string): Promise<Readonly<Record<string, unknown>> | undefined>;
}

/**
 * Finds the server and logs in: with the token of `--token-file`, with the login that `hearth login` has stored, or by
 * asking for a password at a terminal.
 * Checks the token or the password with the server, and trusts a stored login.
 * @throws CommandFailure when there is no login, or the server refuses the token or the password or cannot be reached
 */
export async function openSession(flags: AdministrationFlags): Promise<Session> {
  const logins = new StoredLogins(flags.context);
  const server = serverOf(flags, logins);
  if (flags.tokenFile !== undefined) {
    const token = firstLine(readFileSync(flags.tokenFile, 'utf8')).trim();
    const api = adminApiAt(server, token);
    return sessionOf(api, await userOfToken(api));
  }
  const stored = logins.get(server.address) ?? (await askForLogin(server, logins));
  return sessionOf(adminApiAt(server, stored.accessToken), stored.userId);
}

async function askForLogin(server: ServerAddress, logins: StoredLogins) {
  if (!process.stdin.isTTY) {
    throw new CommandFailure(
      `there is no login at ${server.address}: call ${ownCommand} login${server.certificate ? ' -c CONFIGURATION' : ` --server ${server.address}`} first, or give a file with an access token of an administrator with --token-file`,
    );
  }
  process.stderr.write(`Log in at ${server.address} as a server administrator.\n`);
  const login = await logInWithPassword(adminApiAt(server), {});
  logins.set(server.address, login);
  return login;
}

function sessionOf(api: AdminApi, userId: string): Session {
  return {
    userId,
    serverName: userId.slice(userId.indexOf(':') + 1),
    async call(method, path, body) {
      const answer = await api.send(method, path, body);
      if (answer.status >= 200 && answer.status < 300) return answer.body;
      throw refusalOf(api, answer);
    },
    async find(path) {
      const answer = await api.send('GET', path);
      if (answer.status === 200) return answer.body;
      if (answer.status === 404 && answer.body['errcode'] === 'M_NOT_FOUND') return undefined;
      throw refusalOf(api, answer);
    },
  };
}
