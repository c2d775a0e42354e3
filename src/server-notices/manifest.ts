import type { SliceManifest } from '../kernel/slices/index.ts';
import { serverNoticeMigrations } from './migrations.ts';

export const serverNoticesManifest: SliceManifest = {
  name: 'server-notices',
  migrations: serverNoticeMigrations,
  roomRows: {
    tables: [{ table: 'server_notice_rooms', column: 'room_id', holds: 'room id', key: ['user_id'] }],
  },
};
