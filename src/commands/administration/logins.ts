import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { CommandContext } from '../command-context.ts';
import { CommandFailure } from '../failure.ts';

/** A login of an administrator at a server. */
export interface StoredLogin {
  readonly userId: string;
  readonly accessToken: string;
  /** Whether `hearth login` created the session. The next login then ends it; a session of another client continues. */
  readonly isOwnSession?: boolean;
}

/** Logins by the address of the server. */
type Logins = Readonly<Record<string, StoredLogin>>;

/** Returns the path of the current user's file of logins: `hearth/logins.json` in `$XDG_CONFIG_HOME` or `~/.config`. */
function loginsFile({ environment }: CommandContext): string {
  return join(environment['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'hearth', 'logins.json');
}

/** Access tokens of `hearth login`, in a file that only its owner can read. */
export class StoredLogins {
  readonly #file: string;

  constructor(context: CommandContext) {
    this.#file = loginsFile(context);
  }

  /** Returns the login at an address. @throws CommandFailure when other users can read the file, or it is damaged */
  get(address: string): StoredLogin | undefined {
    return this.#read()[keyOf(address)];
  }

  /** Address of the only login; `undefined` when there is none, or more than one. */
  get onlyAddress(): string | undefined {
    const addresses = Object.keys(this.#read());
    return addresses.length === 1 ? addresses[0] : undefined;
  }

  /** Stores a login, in place of an earlier login at the same address. */
  set(address: string, login: StoredLogin): void {
    this.#write({ ...this.#read(), [keyOf(address)]: login });
  }

  delete(address: string): void {
    const { [keyOf(address)]: _deleted, ...others } = this.#read();
    this.#write(others);
  }

  #read(): Logins {
    let text: string;
    try {
      text = readFileSync(this.#file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
      throw error;
    }
    if ((statSync(this.#file).mode & 0o077) !== 0) {
      throw new CommandFailure(
        `other users of this machine can read the access tokens in ${this.#file}: call chmod 600 ${this.#file}, and log in again if they may have been read`,
      );
    }
    try {
      return JSON.parse(text) as Logins;
    } catch {
      throw new CommandFailure(`${this.#file} is damaged: delete it and log in again`);
    }
  }

  /** Replaces the file as a whole, so that the file is never half written. */
  #write(logins: Logins): void {
    const directory = dirname(this.#file);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const next = `${this.#file}.${process.pid}.new`;
    writeFileSync(next, `${JSON.stringify(logins, null, 1)}\n`, { mode: 0o600 });
    // `writeFileSync` applies its mode to new files only.
    chmodSync(next, 0o600);
    renameSync(next, this.#file);
  }
}

/** Returns the key of a server in the file: `http://host/` and `http://host` are the same server. */
const keyOf = (address: string) => address.replace(/\/+$/, '');
