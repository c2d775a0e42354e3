import type { Migration } from '../database.ts';
import { createLeaseTable } from '../lease-table.ts';
import { storesMigration } from '../stores/store-marks.ts';
import { moveMigration } from '../transfer/move-marks.ts';

export const databaseMigrations: readonly Migration[] = [
  {
    name: 'database/0001-writer-lease',
    // On PostgreSQL the table exists: a server takes the lease before it migrates.
    up: ({ db }) => createLeaseTable(db),
  },
  moveMigration,
  storesMigration,
];
