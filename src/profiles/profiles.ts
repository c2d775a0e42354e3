import type { AccountLifecycle, Accounts, RegisteredAccount } from '../accounts/index.ts';
import { type AnyWriter, type Database, writerFor } from '../kernel/database/index.ts';
import type { Requester } from '../kernel/http/index.ts';
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
import { checkField, checkProfileSize, checkValue, isRemoval } from './fields.ts';
import { deleteField, deleteProfile, readProfile, writeField } from './store.ts';
import type { ProfileTables } from './tables.ts';

/** A field of a local user's profile has been set or removed. */
export interface ProfileChange {
  readonly userId: string;
  readonly field: string;
}

/** Profiles of users of other servers. */
export interface RemoteProfiles {
  /**
   * @param field one field only
   * @throws MatrixError M_NOT_FOUND
   */
  fetch(userId: string, field: string | undefined): Promise<JsonObject>;
}

/** What is known of a file in this server's media repository. */
export interface AvatarFiles {
  /** `undefined` when there is no such file here. */
  describe(mxcUri: string): Promise<{ size: number; mimeType: string } | undefined>;
}

export type ProfileOptions = Pick<
  ProfilesConfig,
  'enable_set_displayname' | 'enable_set_avatar_url' | 'max_avatar_size' | 'allowed_avatar_mimetypes'
> & { readonly server_name: string };

export interface ProfilesDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  /** For changes that others make: administrators. */
  readonly accounts: () => Pick<Accounts, 'userExists'>;
  readonly remote?: RemoteProfiles | undefined;
  /** Of users in whose name the server itself speaks: they have no account. */
  readonly serverUserProfile?: (userId: string) => JsonObject | undefined;
  readonly avatarFiles?: AvatarFiles | undefined;
  /** Part of every transaction that changes a profile, for those who keep copies of it. */
  readonly onChange?: (writer: AnyWriter, userId: string) => Promise<void>;
  /** Waits, some seconds at most, for what was ordered for later in such a transaction. */
  readonly settled?: (userId: string) => Promise<void>;
}

const noProfile = () => notFound('No such profile');

/** What users say about themselves. Source: client-server API, "Profiles". */
export class Profiles implements AccountLifecycle {
  readonly profileStream = new Stream<ProfileChange>('profiles', jsonFacts());
  readonly #deps: ProfilesDeps;
  readonly #options: ProfileOptions;

  constructor(deps: ProfilesDeps, options: ProfileOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** The profile of a local user; empty for a user that has none, or does not exist. */
  async read(userId: string): Promise<JsonObject> {
    const fixed = this.#deps.serverUserProfile?.(userId);
    if (fixed) return fixed;
    return readProfile(this.#deps.database.reader<ProfileTables>(), userId);
  }

  /** The profile of any user. Throws MatrixError M_NOT_FOUND. */
  async get(userId: string, field?: string): Promise<JsonObject> {
    if (!this.#isLocal(userId)) {
      if (this.#deps.remote === undefined) throw noProfile();
      return this.#deps.remote.fetch(userId, field);
    }
    if (userId.includes('\0') || !(await this.#exists(userId))) throw noProfile();
    const profile = await this.read(userId);
    if (field === undefined) return profile;
    const value = Object.hasOwn(profile, field) ? profile[field] : undefined;
    if (value === undefined) throw notFound('The profile has no such field');
    return { [field]: value };
  }

  /**
   * Sets a field.
   * @throws MatrixError M_FORBIDDEN, M_INVALID_PARAM, M_KEY_TOO_LARGE, M_PROFILE_TOO_LARGE
   */
  async set(requester: Requester, userId: string, field: string, value: JsonValue): Promise<void> {
    checkField(field);
    checkValue(field, value);
    await this.#checkMayChange(requester, userId, field);
    if (isRemoval(field, value)) return this.#remove(userId, field);
    if (field === 'avatar_url') await this.#checkAvatar(value as string);
    await this.#deps.streams.write<ProfileTables, void>(async (writer, publish) => {
      checkProfileSize({ ...(await readProfile(writer, userId)), [field]: value });
      await writeField(writer, userId, field, value);
      publish(this.profileStream, { userId, field });
      await this.#deps.onChange?.(writer, userId);
    });
    await this.#deps.settled?.(userId);
  }

  /** Removes a field, if it is there. Throws MatrixError M_FORBIDDEN, M_INVALID_PARAM, M_KEY_TOO_LARGE. */
  async delete(requester: Requester, userId: string, field: string): Promise<void> {
    checkField(field);
    await this.#checkMayChange(requester, userId, field);
    await this.#remove(userId, field);
  }

  /** New users are called by their local part until they choose a name. */
  async registered(writer: AnyWriter, publish: Publish, account: RegisteredAccount): Promise<void> {
    const { userId, isGuest } = account;
    if (isGuest) return;
    const name = account.displayName ?? localpartOf(userId);
    await writeField(writerFor<ProfileTables>(writer), userId, 'displayname', name);
    publish(this.profileStream, { userId, field: 'displayname' });
  }

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
      if (!this.#isLocal(userId) || !(await this.#deps.accounts().userExists(userId))) throw noProfile();
      return;
    }
    if (requester.userId !== userId) throw forbidden("You can not change another user's profile");
    if (requester.isGuest && field !== 'displayname') {
      throw new MatrixError(403, 'M_GUEST_ACCESS_FORBIDDEN', 'Guests can change their name only');
    }
    const { enable_set_avatar_url, enable_set_displayname } = this.#options;
    if (
      (field === 'displayname' && !enable_set_displayname) ||
      (field === 'avatar_url' && !enable_set_avatar_url)
    ) {
      throw forbidden('This can not be changed here');
    }
  }

  async #checkAvatar(url: string): Promise<void> {
    const { allowed_avatar_mimetypes: allowed, max_avatar_size: largest } = this.#options;
    if (allowed === null && largest === null) return;
    const file = await this.#deps.avatarFiles?.describe(url);
    if (file === undefined) throw forbidden('Avatars must be in the media repository of this server');
    if (largest !== null && file.size > largest) throw forbidden('This file is too large for an avatar');
    if (allowed !== null && !allowed.includes(file.mimeType)) {
      throw forbidden('This kind of file can not be an avatar');
    }
  }

  async #exists(userId: string): Promise<boolean> {
    return this.#deps.serverUserProfile?.(userId) !== undefined || this.#deps.accounts().userExists(userId);
  }

  #isLocal(userId: string): boolean {
    return serverOfUser(userId) === this.#options.server_name;
  }
}
