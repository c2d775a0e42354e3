import { type JsonObject, MatrixError } from '../protocol/index.ts';
import { boundedProfile } from './bounded-profile.ts';
import type { RemoteUser } from './browser-logins/identity-provider.ts';
import { LoginFailure } from './browser-logins/login-failure.ts';

/** The account that a module maps a user to; see `MappedUser` of `hearth/module`. */
export interface MappedUser {
  readonly localpart?: string;
  readonly confirmsLocalpart?: boolean;
  readonly displayName?: string;
  readonly emails?: readonly string[];
  readonly picture?: string;
  readonly attributes?: JsonObject;
}

/** A module that maps users of an identity provider to accounts. Both methods throw MatrixError, also when the module fails. */
export interface UserMapper {
  /** Returns the id that identifies a user; `undefined` where the module leaves the choice of the id to this server. */
  idOf(user: object): Promise<string> | undefined;
  /** Returns the account that the module maps a user to, with the profile for a new account. */
  map(user: object): Promise<MappedUser>;
}

/**
 * Returns the account that a module maps a user to, with a bounded profile (`boundedProfile`).
 * @throws LoginFailure
 */
export async function mapByModule(mapper: UserMapper, user: object): Promise<Omit<RemoteUser, 'externalId'>> {
  const { displayName, emails = [], attributes, ...mapped } = await asLoginFailure(() => mapper.map(user));
  return {
    ...mapped,
    ...boundedProfile(displayName, emails),
    ...(attributes !== undefined && { extraFields: attributes }),
  };
}

/**
 * Returns the id of a user; `undefined` where the module leaves the choice of the id to this server.
 * @throws LoginFailure
 */
export const idByModule = (mapper: UserMapper | undefined, user: object): Promise<string | undefined> =>
  asLoginFailure(async () => mapper?.idOf(user));

/** Turns the MatrixError of a module that denies or fails into a LoginFailure, whose text the error page shows. */
async function asLoginFailure<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof MatrixError)) throw cause;
    const { status, errcode, message } = cause;
    throw new LoginFailure(status < 500 ? errcode : 'mapping_error', message, { status, cause });
  }
}
