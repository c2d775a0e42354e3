import type { Migration } from '../database.ts';
import { createLeaseTable } from '../lease-table.ts';
import { moveMigration } from '../transfer/move-marks.ts';
import { storesMigration } from '../transfer/store-marks.ts';

export const databaseMigrations: readonly Migration[] = [
  {
    name: 'database/0001-writer-lease',
    // On PostgreSQL the table already exists: a server takes the lease before it migrates.
    up: ({ db }) => createLeaseTable(db),
  },
  moveMigration,
  storesMigration,
];
