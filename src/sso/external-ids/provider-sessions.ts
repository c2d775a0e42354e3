import { type AnyWriter, type Database, writerFor } from '../../kernel/database/index.ts';
import type { SsoTables } from '../tables.ts';

/** The session of a user at an identity provider. */
export interface ProviderSession {
  readonly provider: string;
  readonly externalId: string;
  readonly sessionId: string | undefined;
}

/** A device, and the provider's user who logged in with it. */
export interface DeviceOfSession {
  readonly userId: string;
  readonly deviceId: string;
  readonly externalId: string;
}

/** Stores which devices were logged in through which session at an identity provider. */
export class ProviderSessions {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Records the session of a device, in the transaction that logs the device in. */
  async recordIn(
    writer: AnyWriter,
    { userId, deviceId }: { readonly userId: string; readonly deviceId: string },
    { provider, externalId, sessionId }: ProviderSession,
  ): Promise<void> {
    const values = { auth_provider: provider, external_id: externalId, session_id: sessionId ?? null };
    await writerFor<SsoTables>(writer)
      .insertInto('provider_sessions')
      .values({ user_id: userId, device_id: deviceId, ...values })
      .onConflict((conflict) => conflict.columns(['user_id', 'device_id']).doUpdateSet(values))
      .execute();
  }

  /** Returns the devices of a session at the provider, or of all sessions of a provider's user. */
  async devicesOf(
    provider: string,
    by: { readonly sessionId: string } | { readonly externalId: string },
  ): Promise<DeviceOfSession[]> {
    const devices = this.#database
      .reader<SsoTables>()
      .selectFrom('provider_sessions')
      .select(['user_id', 'device_id', 'external_id'])
      .where('auth_provider', '=', provider);
    const found =
      'sessionId' in by
        ? devices.where('session_id', '=', by.sessionId)
        : devices.where('external_id', '=', by.externalId);
    const rows = await found.execute();
    return rows.map((row) => ({
      userId: row.user_id,
      deviceId: row.device_id,
      externalId: row.external_id,
    }));
  }
}
