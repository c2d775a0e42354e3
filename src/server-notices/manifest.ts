import type { SliceManifest } from '../kernel/slices/index.ts';
import { serverNoticesSection } from './config.ts';
import { serverNoticeMigrations } from './migrations.ts';

export const serverNoticesManifest = {
  name: 'server-notices',
  options: { serverNotices: serverNoticesSection },
  migrations: serverNoticeMigrations,
  roomRows: {
    tables: [{ table: 'server_notice_rooms', column: 'room_id', holds: 'room id', key: ['user_id'] }],
  },
  accountRows: { tables: [{ table: 'consent_notices', column: 'user_id', deletedOn: 'deactivation' }] },
} satisfies SliceManifest;
