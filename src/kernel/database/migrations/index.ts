import type { Migration } from '../database.ts';
import { createLeaseTable } from '../lease-table.ts';

export const databaseMigrations: readonly Migration[] = [
  {
    name: 'database/0001-writer-lease',
    // A server that claims the database has made the table before: it claims it before it migrates.
    up: ({ db }) => createLeaseTable(db),
  },
];
