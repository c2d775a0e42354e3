import type { SliceManifest } from '../kernel/slices/index.ts';
import { oauthSection } from './config.ts';
import { oauthMigrations } from './migrations.ts';

const device = { userColumn: 'user_id', deviceColumn: 'device_id' } as const;

export const oauthManifest = {
  name: 'oauth',
  options: { oauth: oauthSection },
  accountRows: {
    tables: [
      { table: 'browser_sessions', column: 'user_id', deletedOn: 'logout' },
      { table: 'oauth_codes', column: 'user_id', deletedOn: 'logout' },
      { table: 'oauth_device_grants', column: 'user_id', deletedOn: 'logout' },
      { table: 'cross_signing_resets', column: 'user_id', deletedOn: 'logout' },
    ],
  },
  deviceRows: {
    tables: [
      { ...device, table: 'oauth_sessions' },
      { ...device, table: 'oauth_exchanged_tokens' },
    ],
  },
  migrations: oauthMigrations,
} satisfies SliceManifest;
