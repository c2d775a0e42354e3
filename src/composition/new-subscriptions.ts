import type { Kernel } from './kernel.ts';

/** Whether new users receive mails about missed events. */
export function subscribesNewUsers({ configuration: { mail } }: Pick<Kernel, 'configuration'>): boolean {
  return mail.email?.enable_notifs === true && mail.email.notif_for_new_users;
}
