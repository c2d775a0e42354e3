import { type AnyWriter, writerFor } from '../kernel/database/index.ts';
import type { SliceManifest } from '../kernel/slices/index.ts';
import { appservicesSection } from './config.ts';
import { appserviceMigrations } from './migrations.ts';
import { skipTransactionIds } from './store.ts';
import type { AppserviceTables } from './tables.ts';

export const appservicesManifest = {
  name: 'appservices',
  options: { appservices: appservicesSection },
  migrations: appserviceMigrations,
  afterDatabaseRestore: {
    change: (writer: AnyWriter) => skipTransactionIds(writerFor<AppserviceTables>(writer)),
  },
} satisfies SliceManifest;
