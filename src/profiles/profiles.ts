import type { AccountLifecycle, AccountReader, RegisteredAccount } from '../accounts/index.ts';
import { type AnyWriter, type Database, writerFor } from '../kernel/database/index.ts';
import { type Requester, useAdministratorRight } from '../kernel/http/index.ts';
import { jsonFacts, type Publish, Stream, type StreamWriter } from '../kernel/streams/index.ts';
import {
  forbidden,
  type JsonObject,
  type JsonValue,
  localpartOf,
  MatrixError,
  notFound,
  serverOfUser,
} from '../protocol/index.ts';
import type { ProfilesConfig } from './config.ts';
import { boundedName, checkField, checkProfileSize, checkValue, fieldOf, isRemoval } from './fields.ts';
import { beginListedProfile } from './listed-profiles.ts';
import { deleteField, deleteProfile, readProfile, writeField } from './store.ts';
import type { ProfileTables } from './tables.ts';

/** A field of a local user's profile has been set or removed. */
export interface ProfileChange {
  readonly userId: string;
  readonly field: string;
}

/** Fetches profiles of remote users. */
export interface RemoteProfiles {
  /**
   * @param field the only field to return
   * @throws MatrixError M_NOT_FOUND
   */
  fetch(userId: string, field: string | undefined): Promise<JsonObject>;
}

/** Describes files in this server's media repository. */
export interface AvatarFiles {
  /** Returns the size in bytes and the content type; `undefined` when the file does not exist on this server. */
  describe(mxcUri: string): Promise<{ size: number; mimeType: string } | undefined>;
}

export type ProfileOptions = Pick<
  ProfilesConfig,
  'enable_set_displayname' | 'enable_set_avatar_url' | 'max_avatar_size' | 'allowed_avatar_mimetypes'
> & { readonly server_name: string };

export interface ProfilesDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  /** Reports whether the owner of a profile exists. */
  readonly accounts: Pick<AccountReader, 'userExists'>;
  readonly remote?: RemoteProfiles | undefined;
  /**
   * Returns the profile of a user who has no account and in whose name the server itself sends events; `undefined` for
   * other users.
   */
  readonly serverUserProfile?: (userId: string) => JsonObject | undefined;
  readonly avatarFiles?: AvatarFiles | undefined;
  /**
   * Queries the application services for a user, so that one of them may create the user.
   * @returns whether an application service has created the user
   */
  readonly provideUser?: ((userId: string) => Promise<boolean>) | undefined;
  /** Runs in the transaction that sets or removes a field of an existing user, to update copies of the profile. */
  readonly onChange?: (writer: AnyWriter, userId: string) => Promise<void>;
  /** Waits, at most some seconds, for the jobs that `onChange` has scheduled. */
  readonly settled?: (userId: string) => Promise<void>;
}

const profileNotFound = () => notFound('No such profile');

/** The profiles of local users. Source: client-server API, "Profiles". */
export class Profiles implements AccountLifecycle {
  readonly profileStream = new Stream<ProfileChange>('profiles', jsonFacts());
  readonly #deps: ProfilesDeps;
  readonly #options: ProfileOptions;

  constructor(deps: ProfilesDeps, options: ProfileOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Returns the profile of a local user; empty for a user who has none or does not exist. */
  async read(userId: string): Promise<JsonObject> {
    const fixed = this.#deps.serverUserProfile?.(userId);
    if (fixed) return fixed;
    return readProfile(this.#deps.database.reader<ProfileTables>(), userId);
  }

  /**
   * Returns the profile of a local or remote user.
   * @param field the only field to return; when the field is unset, the result has no members
   * @throws MatrixError M_NOT_FOUND
   */
  async get(userId: string, field?: string): Promise<JsonObject> {
    if (!this.#isLocal(userId)) {
      if (this.#deps.remote === undefined) throw profileNotFound();
      return this.#deps.remote.fetch(userId, field);
    }
    if (userId.includes('\0') || !(await this.#existsOrProvided(userId))) throw profileNotFound();
    const profile = await this.read(userId);
    if (field === undefined) return profile;
    return fieldOf(profile, field);
  }

  /** Checks the name and the value of a field before it is set. @throws MatrixError M_INVALID_PARAM, M_KEY_TOO_LARGE */
  check(field: string, value: JsonValue): void {
    checkField(field);
    checkValue(field, value);
  }

  /**
   * Checks fields of a local user before they are set. Checks an avatar also against the options for avatars.
   * @throws MatrixError M_FORBIDDEN, M_INVALID_PARAM, M_KEY_TOO_LARGE, M_PROFILE_TOO_LARGE
   */
  async checkAll(userId: string, fields: JsonObject): Promise<void> {
    for (const [field, value = null] of Object.entries(fields)) {
      this.check(field, value);
      if (field === 'avatar_url' && !isRemoval(field, value)) await this.checkAvatar(value as string);
    }
    if (Object.keys(fields).length > 0) checkProfileSize({ ...(await this.read(userId)), ...fields });
  }

  /**
   * Sets a field of a local user for a requester; an empty display name or avatar removes the field.
   * @throws MatrixError M_FORBIDDEN, M_GUEST_ACCESS_FORBIDDEN, M_NOT_FOUND, M_INVALID_PARAM, M_KEY_TOO_LARGE,
   * M_PROFILE_TOO_LARGE
   */
  async set(requester: Requester, userId: string, field: string, value: JsonValue): Promise<void> {
    this.check(field, value);
    await this.#checkMayChange(requester, userId, field);
    await this.setForUser(userId, field, value);
  }

  /**
   * Sets a field of a local user without checking whether a requester may change it.
   * @throws MatrixError M_FORBIDDEN for an avatar that is not allowed, M_INVALID_PARAM, M_KEY_TOO_LARGE, M_PROFILE_TOO_LARGE
   */
  async setForUser(userId: string, field: string, value: JsonValue): Promise<void> {
    this.check(field, value);
    if (isRemoval(field, value)) return this.#remove(userId, field);
    if (field === 'avatar_url') await this.checkAvatar(value as string);
    await this.#deps.streams.write<ProfileTables, void>(async (writer, publish) => {
      checkProfileSize({ ...(await readProfile(writer, userId)), [field]: value });
      await writeField(writer, userId, field, value);
      publish(this.profileStream, { userId, field });
      await this.#deps.onChange?.(writer, userId);
    });
    await this.#deps.settled?.(userId);
  }

  /**
   * Removes a field if it exists.
   * @throws MatrixError M_FORBIDDEN, M_GUEST_ACCESS_FORBIDDEN, M_NOT_FOUND, M_INVALID_PARAM, M_KEY_TOO_LARGE
   */
  async delete(requester: Requester, userId: string, field: string): Promise<void> {
    checkField(field);
    await this.#checkMayChange(requester, userId, field);
    await this.#remove(userId, field);
  }

  /**
   * Checks an avatar by `max_avatar_size` and `allowed_avatar_mimetypes`.
   * @throws MatrixError M_FORBIDDEN for an avatar that is not allowed
   */
  async checkAvatar(url: string): Promise<void> {
    const { allowed_avatar_mimetypes: allowed, max_avatar_size: maxSize } = this.#options;
    if (allowed === null && maxSize === null) return;
    const file = await this.#deps.avatarFiles?.describe(url);
    if (file === undefined) throw forbidden('Avatars must be in the media repository of this server');
    if (maxSize !== null && file.size > maxSize) throw forbidden('This file is too large for an avatar');
    if (allowed !== null && !allowed.includes(file.mimeType)) {
      throw forbidden('Files of this media type are not allowed as avatars');
    }
  }

  /** Sets the display name of a new user, by default to the localpart; guests get none. */
  async registered(writer: AnyWriter, publish: Publish, account: RegisteredAccount): Promise<void> {
    const { userId, isGuest } = account;
    if (isGuest) return beginListedProfile(writerFor<ProfileTables>(writer), userId);
    const name = boundedName(account.displayName ?? localpartOf(userId));
    await writeField(writerFor<ProfileTables>(writer), userId, 'displayname', name);
    publish(this.profileStream, { userId, field: 'displayname' });
  }

  /** Deletes the profile of a user who is erased. */
  async deactivated(
    writer: AnyWriter,
    publish: Publish,
    { userId, erase }: { userId: string; erase: boolean },
  ): Promise<void> {
    if (!erase) return;
    const fields = await deleteProfile(writerFor<ProfileTables>(writer), userId);
    for (const field of fields) publish(this.profileStream, { userId, field });
  }

  async #remove(userId: string, field: string): Promise<void> {
    await this.#deps.streams.write<ProfileTables, void>(async (writer, publish) => {
      if (!(await deleteField(writer, userId, field))) return;
      publish(this.profileStream, { userId, field });
      await this.#deps.onChange?.(writer, userId);
    });
    await this.#deps.settled?.(userId);
  }

  async #checkMayChange(requester: Requester, userId: string, field: string): Promise<void> {
    if (requester.isAdmin) {
      if (requester.userId !== userId) useAdministratorRight();
      if (!this.#isLocal(userId) || !(await this.#deps.accounts.userExists(userId))) throw profileNotFound();
      return;
    }
    if (requester.userId !== userId) throw forbidden("You cannot change another user's profile");
    if (requester.isGuest && field !== 'displayname') {
      throw new MatrixError(403, 'M_GUEST_ACCESS_FORBIDDEN', 'Guests can change only their display name');
    }
    const { enable_set_avatar_url, enable_set_displayname } = this.#options;
    if (
      (field === 'displayname' && !enable_set_displayname) ||
      (field === 'avatar_url' && !enable_set_avatar_url)
    ) {
      throw forbidden('Users cannot change this profile field on this server');
    }
  }

  async #exists(userId: string): Promise<boolean> {
    return this.#deps.serverUserProfile?.(userId) !== undefined || this.#deps.accounts.userExists(userId);
  }

  /** Whether a user exists; asks the application services to create a user who does not. */
  async #existsOrProvided(userId: string): Promise<boolean> {
    if (await this.#exists(userId)) return true;
    return (await this.#deps.provideUser?.(userId)) === true && this.#exists(userId);
  }

  #isLocal(userId: string): boolean {
    return serverOfUser(userId) === this.#options.server_name;
  }
}
