import { createHash, timingSafeEqual } from 'node:crypto';
import type { HearthConfiguration } from '../../configuration.ts';
import { builtInLogin } from '../../kernel/process/index.ts';

/** The user name and password of the debugging console. */
export interface ManholeLogin {
  readonly username: string;
  readonly password: string;
}

/** Returns the configured user name and password; each has a built-in, publicly known default. */
export function loginOf({ process: { manhole_settings: settings } }: HearthConfiguration): ManholeLogin {
  return {
    username: settings.username ?? builtInLogin.username,
    password: settings.password ?? builtInLogin.password,
  };
}

/** Whether a login has the right name and password. Takes the same time for right and wrong logins. */
export function isRightLogin(given: ManholeLogin, right: ManholeLogin): boolean {
  const isRightName = isEqualText(given.username, right.username);
  return isEqualText(given.password, right.password) && isRightName;
}

const isEqualText = (given: string, expected: string) => timingSafeEqual(digest(given), digest(expected));

const digest = (text: string) => createHash('sha256').update(text).digest();
