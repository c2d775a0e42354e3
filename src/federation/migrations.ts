import type { Migration } from '../kernel/database/index.ts';
import { announcementMigrations } from './devices/migrations.ts';
import { senderMigrations } from './sender/migrations.ts';
import { transactionMigrations } from './transactions/migrations.ts';

export const federationMigrations: readonly Migration[] = [
  ...transactionMigrations,
  ...senderMigrations,
  ...announcementMigrations,
];
