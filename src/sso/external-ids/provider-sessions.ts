import { type AnyWriter, type Database, writerFor } from '../../kernel/database/index.ts';
import type { SsoTables } from '../tables.ts';

/** The session of a user at an identity provider. */
export interface ProviderSession {
  readonly provider: string;
  readonly externalId: string;
  readonly sessionId: string | undefined;
}

/**
 * A logout that a provider has requested. A session id ends one session, an external id ends all sessions of a user, and
 * both ids end the session only if it belongs to the user. At least one of the ids is present.
 */
export interface ProviderLogout {
  readonly provider: string;
  readonly sessionId: string | undefined;
  readonly externalId: string | undefined;
}

/** A device that was logged in through a provider. */
export interface DeviceOfSession {
  readonly userId: string;
  readonly deviceId: string;
}

/** Stores, for each device, the session at the identity provider that logged it in. */
export class ProviderSessions {
  readonly #database: Database;
  readonly #listeners: ((logout: ProviderLogout) => Promise<void>)[] = [];

  constructor(database: Database) {
    this.#database = database;
  }

  /** Registers a function that a logout calls besides deleting devices. Called while the server opens. */
  onLogout(listener: (logout: ProviderLogout) => Promise<void>): void {
    this.#listeners.push(listener);
  }

  /** Calls the functions that `onLogout` has registered. */
  async callLogoutListeners(logout: ProviderLogout): Promise<void> {
    for (const listener of this.#listeners) await listener(logout);
  }

  /** Records the session of a device, in the transaction that logs the device in. */
  async recordIn(
    writer: AnyWriter,
    { userId, deviceId }: DeviceOfSession,
    { provider, externalId, sessionId }: ProviderSession,
  ): Promise<void> {
    const values = { auth_provider: provider, external_id: externalId, session_id: sessionId ?? null };
    await writerFor<SsoTables>(writer)
      .insertInto('provider_sessions')
      .values({ user_id: userId, device_id: deviceId, ...values })
      .onConflict((conflict) => conflict.columns(['user_id', 'device_id']).doUpdateSet(values))
      .execute();
  }

  /**
   * Forgets the session of a device that logs in again, in the transaction of that login: a later logout at the
   * provider must not end a session that was opened in another way, for instance with a password.
   */
  async forgetIn(writer: AnyWriter, { userId, deviceId }: DeviceOfSession): Promise<void> {
    await writerFor<SsoTables>(writer)
      .deleteFrom('provider_sessions')
      .where('user_id', '=', userId)
      .where('device_id', '=', deviceId)
      .execute();
  }

  /** Returns the devices whose sessions a logout ends. */
  async devicesOf({ provider, sessionId, externalId }: ProviderLogout): Promise<DeviceOfSession[]> {
    const rows = await this.#database
      .reader<SsoTables>()
      .selectFrom('provider_sessions')
      .select(['user_id', 'device_id'])
      .where('auth_provider', '=', provider)
      .$if(sessionId !== undefined, (query) => query.where('session_id', '=', sessionId ?? ''))
      .$if(externalId !== undefined, (query) => query.where('external_id', '=', externalId ?? ''))
      .execute();
    return rows.map((row) => ({ userId: row.user_id, deviceId: row.device_id }));
  }
}
