import { ownCommand } from '../../kernel/process/index.ts';
import { type AdminAnswer, type AdminApi, reasonOf } from '../admin-api.ts';
import type { CommandContext } from '../command-context.ts';
import { type ConfigFlags, configPaths, readConfiguration } from '../configuration-files.ts';
import { CommandFailure } from '../failure.ts';
import { localServer, type ServerAddress } from '../local-server.ts';
import type { StoredLogins } from './logins.ts';

/** The options of all commands that use the admin API. */
export interface AdministrationFlags extends ConfigFlags {
  readonly context: CommandContext;
  /** The URL of the server; by default that of the configuration, or else that of the only stored login. */
  readonly server?: string;
  /** A file with an access token, used instead of a stored login. */
  readonly tokenFile?: string;
  /** Prints JSON instead of a table. */
  readonly json?: boolean;
  /** Does not ask for confirmations. */
  readonly yes?: boolean;
}

/**
 * Returns the server of `--server`, or of the configuration, or of the only stored login.
 * @throws CommandFailure when none of these names a server
 */
export function serverOf(flags: AdministrationFlags, logins: StoredLogins): ServerAddress {
  if (flags.server !== undefined) return { address: flags.server };
  const paths = configPaths(flags);
  if (paths.length > 0)
    return localServer(readConfiguration(paths, { environment: flags.context.environment }).values);
  const address = logins.onlyAddress;
  if (address !== undefined) return { address };
  throw new CommandFailure('which server? Give its configuration with -c, or its URL with --server');
}

/** Returns the user of an access token. @throws CommandFailure when it is not valid */
export async function userOfToken(api: AdminApi): Promise<string> {
  const answer = await api.send('GET', '/_matrix/client/v3/account/whoami');
  if (answer.status === 200) return String(answer.body['user_id']);
  throw refusalOf(api, answer);
}

/** Returns the failure of a request that the server has refused. */
export function refusalOf(api: AdminApi, answer: AdminAnswer): CommandFailure {
  if (answer.body['errcode'] === 'M_UNKNOWN_TOKEN') {
    return new CommandFailure(
      `the access token for ${api.address} is not valid any more: call ${ownCommand} login again, or give another --token-file`,
    );
  }
  if (answer.status === 403) {
    return new CommandFailure(`${reasonOf(answer)} (the command needs the login of a server administrator)`);
  }
  return new CommandFailure(`${api.address} answered ${answer.status}: ${reasonOf(answer)}`);
}
