/** Server notices: messages of the server to its users, each in a room of their own. */
export type { NoticeOptions } from './config.ts';
export { noticeRoomLeaveCheck } from './leave-check.ts';
export { serverNoticeMigrations } from './migrations.ts';
export { NoticeRoomJobs } from './notice-room-jobs.ts';
export { type NoticesUser, noticesUser } from './notices-user.ts';
export { openServerNotices } from './open.ts';
export type { NoticeManner } from './server-notices.ts';
