import type { JsonObject } from '../protocol/index.ts';
import type { ValidatedAddress } from './third-party-identifiers.ts';

/** A login whose user has been authenticated. */
export interface AuthenticatedLogin {
  readonly userId: string;
  /** Login type. */
  readonly type: string;
  readonly deviceId: string | undefined;
  readonly deviceName: string | undefined;
  /** Address of the client. */
  readonly ip: string;
}

/** A registration by a client that has completed the stages of interactive authentication. */
export interface CompletedRegistration {
  readonly userId: string;
  readonly isGuest: boolean;
  /** Email addresses and phone numbers that the client has validated. */
  readonly addresses: readonly ValidatedAddress[];
  /** Address of the client. */
  readonly ip: string;
}

/**
 * The consequence of an allowed registration: with `shadow-ban`, the events of the new account are accepted
 * and not sent.
 */
export type RegistrationVerdict = 'shadow-ban' | undefined;

/**
 * Forbids logins, registrations and deactivations that the options allow; supplied by modules, and by the limit of
 * monthly active users. Each check may throw a MatrixError.
 */
export interface AccountChecks {
  /** Runs before a session is opened for an authenticated user. Absent: nothing is checked. */
  readonly login?: ((login: AuthenticatedLogin) => Promise<void>) | undefined;
  /** Runs before the account is created, and before a guest becomes a full user. Absent: nothing is checked. */
  readonly registration?: ((registration: CompletedRegistration) => Promise<RegistrationVerdict>) | undefined;
  /**
   * Runs before a login creates the account of a user whom another service has authenticated. Absent: nothing is checked.
   */
  readonly newAccount?: (() => void) | undefined;
  /** Runs before an account is deactivated. Absent: nothing is checked. */
  readonly deactivation?: ((userId: string, byAdmin: boolean) => Promise<void>) | undefined;
}

/** A registration by a client that has completed the stages of interactive authentication. It has no user id yet. */
export interface PendingRegistration {
  /** The user name that the client requests. */
  readonly username: string | undefined;
  /** The results of the completed stages, by type. */
  readonly stages: JsonObject;
}

/** Names of new accounts; supplied by modules. An absent member answers like one that returns `undefined`. */
export interface AccountNames {
  /**
   * Returns the localpart of the user id; `undefined` leaves it to the client.
   * @throws MatrixError when no localpart is possible
   */
  readonly username?: ((registration: PendingRegistration) => Promise<string | undefined>) | undefined;
  /** Returns the display name; `undefined` for the default. */
  readonly displayName?: ((registration: PendingRegistration) => Promise<string | undefined>) | undefined;
}

/** A session that was opened by a login. */
export interface OpenedLogin {
  readonly userId: string;
  readonly deviceId: string;
  /** Login type. */
  readonly type: string;
}

/**
 * Combines the checks of several sources. Each combined check runs those of the sources in their order and throws the
 * first error. A new account is shadow-banned if the check of at least one source says so.
 */
export function combinedChecks(sources: readonly (AccountChecks | undefined)[]): AccountChecks {
  const logins = sources.flatMap((source) => source?.login ?? []);
  const registrations = sources.flatMap((source) => source?.registration ?? []);
  const newAccounts = sources.flatMap((source) => source?.newAccount ?? []);
  const deactivations = sources.flatMap((source) => source?.deactivation ?? []);
  return {
    ...(deactivations.length > 0 && {
      deactivation: async (userId, byAdmin) => {
        for (const check of deactivations) await check(userId, byAdmin);
      },
    }),
    ...(newAccounts.length > 0 && {
      newAccount: () => {
        for (const check of newAccounts) check();
      },
    }),
    ...(logins.length > 0 && {
      login: async (login) => {
        for (const check of logins) await check(login);
      },
    }),
    ...(registrations.length > 0 && {
      registration: async (registration) => {
        let verdict: RegistrationVerdict;
        for (const check of registrations) verdict = (await check(registration)) ?? verdict;
        return verdict;
      },
    }),
  };
}
