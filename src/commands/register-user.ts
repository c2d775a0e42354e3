import { readFileSync } from 'node:fs';
import { registrationMac, userIdFor } from '../accounts/index.ts';
import type { HearthConfiguration } from '../configuration.ts';
import { isServerName, MatrixError } from '../protocol/index.ts';
import { type AdminApi, adminApiAt, reasonOf } from './admin-api.ts';
import { type ConfigFlags, configPaths, readConfiguration } from './configuration-files.ts';
import { CommandFailure } from './failure.ts';
import { firstLine } from './first-line.ts';
import { localServer } from './local-server.ts';
import { printable } from './printable.ts';
import { TerminalPrompt } from './terminal.ts';

export interface RegisterUserOptions extends ConfigFlags {
  readonly user?: string;
  readonly passwordFile?: string;
  readonly admin?: boolean;
  readonly userType?: string;
  readonly secretFile?: string;
}

/**
 * `hearth register-user`: registers an account. The secret `registration_shared_secret` proves the right to register,
 * and is never sent.
 */
export async function registerUser(url: string | undefined, options: RegisterUserOptions): Promise<void> {
  const configuration =
    options.secretFile === undefined || url === undefined ? readLocalConfiguration(options) : undefined;
  const secret = secretOf(options, configuration);
  const server = url === undefined ? localServer(configuration!) : { address: url };
  const api = adminApiAt(server);
  const { username, password } = await askForCredentials(options, {
    checkName: (name) => checkName(api, name, configuration),
    requirements: configuration && passwordRequirements(configuration),
  });
  const userId = await register(api, secret, { username, password, ...options });
  process.stdout.write(
    `Registered ${printable(userId)}${options.admin ? ' as a server administrator' : ''}.\n` +
      `To log in, enter ${configuration?.server.public_baseurl ?? server.address} as the homeserver in a Matrix client.\n`,
  );
}

/**
 * Checks the name before the password is asked for. When registration by clients is closed, the server does not say
 * whether a name is available. In that case the rules of the configuration decide whether the name is valid, and a
 * profile of the user shows that the name is taken. Without a configuration, the name is not checked in that case.
 * @throws CommandFailure when the name is taken or not valid
 */
async function checkName(
  api: AdminApi,
  name: string,
  configuration: HearthConfiguration | undefined,
): Promise<void> {
  const available = await api.send(
    'GET',
    `/_matrix/client/v3/register/available?username=${encodeURIComponent(name)}`,
  );
  if (available.status === 400) throw new CommandFailure(`the user name ${name}: ${reasonOf(available)}`);
  if (available.status === 200 || configuration === undefined) return;
  const userId = encodeURIComponent(validUserId(name, configuration));
  const { status } = await api.send('GET', `/_matrix/client/v3/profile/${userId}`);
  if (status === 200) throw new CommandFailure(`the user name ${name} is taken`);
}

/** Returns the user id for a name. @throws CommandFailure when the name is not valid */
function validUserId(name: string, { server, accounts }: HearthConfiguration): string {
  const { server_name } = server;
  if (!isServerName(server_name)) throw new CommandFailure(`${server_name} is not a server name`);
  try {
    return userIdFor(name, { ...accounts, server_name });
  } catch (error) {
    if (error instanceof MatrixError) throw new CommandFailure(`the user name ${name}: ${error.message}`);
    throw error;
  }
}

/** Describes the password policy, which this command does not enforce; `undefined` when it requires nothing. */
function passwordRequirements({ accounts }: HearthConfiguration): string | undefined {
  const { enabled, policy } = accounts.password_config;
  if (!enabled || !policy.enabled) return undefined;
  const parts = [
    policy.minimum_length > 0 && `at least ${policy.minimum_length} characters`,
    policy.require_digit && 'a digit',
    policy.require_symbol && 'a symbol',
    policy.require_lowercase && 'a lowercase letter',
    policy.require_uppercase && 'an uppercase letter',
  ].filter((part) => part !== false);
  return parts.length > 0
    ? `Passwords of users must have ${parts.join(', ')}. This command accepts others.`
    : undefined;
}

async function register(
  api: AdminApi,
  secret: string,
  account: { username: string; password: string; admin?: boolean; userType?: string },
): Promise<string> {
  const { nonce } = await api.call('GET', '/_synapse/admin/v1/register');
  const request = {
    nonce: String(nonce),
    username: account.username,
    password: account.password,
    admin: account.admin ?? false,
    ...(account.userType !== undefined && { user_type: account.userType }),
  };
  const body = { ...request, mac: registrationMac(request, secret) };
  return String((await api.call('POST', '/_synapse/admin/v1/register', body))['user_id']);
}

function readLocalConfiguration(options: RegisterUserOptions): HearthConfiguration {
  const paths = configPaths(options);
  if (paths.length === 0) {
    throw new CommandFailure(
      'no configuration found: give one with -c, or give the URL of the server and --secret-file',
    );
  }
  return readConfiguration(paths, { environment: process.env }).values;
}

function secretOf(
  { secretFile }: RegisterUserOptions,
  configuration: HearthConfiguration | undefined,
): string {
  const secret =
    secretFile === undefined
      ? configuration?.accounts.registration_shared_secret
      : readFileSync(secretFile, 'utf8').trim();
  if (secret) return secret;
  throw new CommandFailure(
    secretFile === undefined
      ? 'the configuration has no registration_shared_secret'
      : `the file ${secretFile} contains no secret`,
  );
}

/** What happens between the prompts for the name and for the password. */
interface BetweenPrompts {
  /** Called before the password is asked for. @throws CommandFailure when the name cannot be registered */
  checkName(name: string): Promise<void>;
  /** Shown before the password is asked for. */
  readonly requirements: string | undefined;
}

/** Maximum number of times that the password is asked for, if its repetition differs. */
const maxAttempts = 3;

async function askForCredentials(
  { user, passwordFile }: RegisterUserOptions,
  { checkName, requirements }: BetweenPrompts,
) {
  const prompt = new TerminalPrompt('give the name with -u and the password with --password-file');
  try {
    const username = user ?? (await prompt.ask('User name: '));
    if (username === '') throw new CommandFailure('the user name is empty');
    await checkName(username);
    if (requirements !== undefined && process.stdin.isTTY) process.stderr.write(`${requirements}\n`);
    const password = await readPassword(prompt, passwordFile);
    if (password === '') throw new CommandFailure('the password is empty');
    return { username, password };
  } finally {
    prompt.close();
  }
}

async function readPassword(prompt: TerminalPrompt, file: string | undefined): Promise<string> {
  if (file !== undefined && file !== '-') return firstLine(readFileSync(file, 'utf8'));
  for (let attempt = 1; ; attempt++) {
    const password = await prompt.askHidden('Password: ');
    if (!process.stdin.isTTY || password === '') return password;
    if ((await prompt.askHidden('Repeat password: ')) === password) return password;
    if (attempt === maxAttempts) throw new CommandFailure('the passwords differ');
    process.stderr.write('The passwords differ. Try again.\n');
  }
}
