import type { SliceManifest } from '../kernel/slices/index.ts';
import { ssoSection } from './config.ts';
import { ssoMigrations } from './migrations.ts';

/**
 * The options and tables of single sign-on. `accountRows` is absent: external ids stay after a deactivation, so that a
 * later login finds the deactivated account instead of creating another account.
 */
export const ssoManifest = {
  name: 'sso',
  options: { sso: ssoSection },
  migrations: ssoMigrations,
  deviceRows: {
    tables: [{ table: 'provider_sessions', userColumn: 'user_id', deviceColumn: 'device_id' }],
  },
} satisfies SliceManifest;
