/** Server notices: messages of the server to its users, each in a room of their own. */
export type { NoticeSources } from './automatic/open.ts';
export type { NoticeOptions } from './config.ts';
export { noticeRoomLeaveCheck } from './leave-check.ts';
export { serverNoticeMigrations } from './migrations.ts';
export { NoticeRoomJobs } from './notice-room-jobs.ts';
export { type NoticesUser, noticesUser } from './notices-user.ts';
export { openServerNotices } from './open.ts';
export type { SendNoticeOptions } from './server-notices.ts';
export { isNoticeRoom, notifiedVersionOf } from './store.ts';
