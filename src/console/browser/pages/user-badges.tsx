import type { ListedUser } from '../api/users.ts';
import { Badge } from '../components/layout.tsx';

type Flags = Pick<
  ListedUser,
  'admin' | 'is_guest' | 'deactivated' | 'erased' | 'shadow_banned' | 'locked' | 'suspended' | 'user_type'
>;

/** Shows the kind, the rights and the restrictions of a user; nothing for a plain active user. */
export function UserBadges({ user }: { readonly user: Flags }) {
  return (
    <span class="badges">
      {user.admin && <Badge kind="accent">Administrator</Badge>}
      {user.is_guest && <Badge>Guest</Badge>}
      {user.user_type && <Badge>{user.user_type}</Badge>}
      {user.locked && <Badge kind="warning">Locked</Badge>}
      {user.suspended && <Badge kind="warning">Suspended</Badge>}
      {user.shadow_banned && <Badge kind="warning">Shadow-banned</Badge>}
      {user.deactivated && <Badge kind="bad">{user.erased ? 'Erased' : 'Deactivated'}</Badge>}
    </span>
  );
}
