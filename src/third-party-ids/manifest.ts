import type { SliceManifest } from '../kernel/slices/index.ts';
import { thirdPartyIdMigrations } from './migrations.ts';

export const thirdPartyIdsManifest = {
  name: 'third-party-ids',
  migrations: thirdPartyIdMigrations,
  accountRows: {
    tables: [
      { table: 'third_party_ids', column: 'user_id', deletedOn: 'deactivation' },
      { table: 'published_third_party_ids', column: 'user_id', deletedOn: 'deactivation' },
    ],
  },
} satisfies SliceManifest;
