import { readFileSync } from 'node:fs';
import { ownCommand } from '../../kernel/process/index.ts';
import { type AdminApi, adminApiAt, reasonOf } from '../admin-api.ts';
import { CommandFailure } from '../failure.ts';
import { firstLine } from '../first-line.ts';
import { printable } from '../printable.ts';
import { TerminalPrompt } from '../terminal.ts';
import { type StoredLogin, StoredLogins } from './logins.ts';
import { type AdministrationFlags, refusalOf, serverOf, userOfToken } from './server-choice.ts';

/** The options of `hearth login`. */
export interface LoginFlags extends AdministrationFlags {
  readonly user?: string;
  readonly passwordFile?: string;
}

/**
 * `hearth login`: logs in as a server administrator, and stores the access token for later commands. Ends the session
 * of an earlier `hearth login` at the same server.
 */
export async function login(flags: LoginFlags): Promise<void> {
  const logins = new StoredLogins(flags.context);
  const server = serverOf(flags, logins);
  const stored =
    flags.tokenFile === undefined
      ? await logInWithPassword(adminApiAt(server), flags)
      : await loginOfToken(firstLine(readFileSync(flags.tokenFile, 'utf8')).trim(), (token) =>
          adminApiAt(server, token),
        );
  const previous = logins.get(server.address);
  logins.set(server.address, stored);
  if (previous?.isOwnSession && previous.accessToken !== stored.accessToken) {
    // The session may have ended already, or the server may not answer: the new login is stored in any case.
    await endSession(adminApiAt(server, previous.accessToken)).catch(() => undefined);
  }
  flags.context.stdout.write(
    `Logged in at ${server.address} as ${printable(stored.userId)}. To end this: ${ownCommand} logout\n`,
  );
}

/** `hearth logout`: ends the session of the stored login, and deletes the login. */
export async function logout(flags: AdministrationFlags): Promise<void> {
  const logins = new StoredLogins(flags.context);
  const server = serverOf(flags, logins);
  const stored = logins.get(server.address);
  if (stored === undefined) throw new CommandFailure(`there is no login at ${server.address}`);
  const answer = await endSession(adminApiAt(server, stored.accessToken));
  if (answer.status !== 200 && answer.status !== 401) throw new CommandFailure(reasonOf(answer));
  logins.delete(server.address);
  flags.context.stdout.write(`Logged out at ${server.address}.\n`);
}

/**
 * Logs in with a password, which is read from a file or from standard input, or asked for at a terminal.
 * @throws CommandFailure when the login fails, or the user is not an administrator
 */
export async function logInWithPassword(
  api: AdminApi,
  { user, passwordFile }: Pick<LoginFlags, 'user' | 'passwordFile'>,
): Promise<StoredLogin> {
  const prompt = new TerminalPrompt('give the name with -u and the password with --password-file');
  let credentials: { readonly name: string; readonly password: string };
  try {
    const name = user ?? (await prompt.ask('Administrator: '));
    const fromFile = passwordFile !== undefined && passwordFile !== '-';
    const password = fromFile
      ? firstLine(readFileSync(passwordFile, 'utf8'))
      : await prompt.askHidden('Password: ');
    credentials = { name, password };
  } finally {
    prompt.close();
  }
  const answer = await api.send('POST', '/_matrix/client/v3/login', {
    type: 'm.login.password',
    identifier: { type: 'm.id.user', user: credentials.name },
    password: credentials.password,
    initial_device_display_name: 'hearth command line',
  });
  if (answer.status !== 200) {
    throw new CommandFailure(
      `the login failed: ${reasonOf(answer)}. Where users log in elsewhere (single sign-on, OAuth 2.0), give an access token with --token-file`,
    );
  }
  const token = String(answer.body['access_token']);
  const userId = String(answer.body['user_id']);
  const authenticatedApi = api.withToken(token);
  try {
    await requireAdministrator(authenticatedApi, userId);
  } catch (error) {
    await endSession(authenticatedApi).catch(() => undefined);
    throw error;
  }
  return { userId, accessToken: token, isOwnSession: true };
}

const endSession = (api: AdminApi) => api.send('POST', '/_matrix/client/v3/logout', {});

/** Returns the login of an existing session. @throws CommandFailure when its user is not an administrator */
async function loginOfToken(token: string, apiWith: (token: string) => AdminApi): Promise<StoredLogin> {
  const api = apiWith(token);
  const userId = await userOfToken(api);
  await requireAdministrator(api, userId);
  return { userId, accessToken: token };
}

/**
 * @throws CommandFailure when the user is not an administrator, or the server does not answer whether the user is one
 */
async function requireAdministrator(api: AdminApi, userId: string): Promise<void> {
  const path = `/_synapse/admin/v1/users/${encodeURIComponent(userId)}/admin`;
  const answer = await api.send('GET', path);
  if (answer.status === 200) return;
  throw answer.status === 403 ? notAdministrator(userId) : refusalOf(api, answer);
}

function notAdministrator(userId: string): CommandFailure {
  const name = printable(userId);
  return new CommandFailure(
    `${name} is not a server administrator. Another administrator can change that with ${ownCommand} user admin ${name}; the first one is made by ${ownCommand} register-user --admin`,
  );
}
