import { type UserDetails, userDetails } from '../api/users.ts';
import { Facts, Page, Section, WhenLoaded } from '../components/layout.tsx';
import { Ago, Time } from '../components/times.tsx';
import { useLoaded } from '../shell/loading.ts';
import { addressOf, type PageAddress } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';
import { UserActions } from './user-actions.tsx';
import { UserBadges } from './user-badges.tsx';
import { UserAccountData, UserDevices, UserPushers, UserRooms } from './user-sections.tsx';

/** Shows a user: the account, its sessions, rooms, pushers and account data. */
export function UserPage({ userId, address }: { readonly userId: string; readonly address: PageAddress }) {
  const { api } = useSession();
  const user = useLoaded((signal) => userDetails(api, userId, signal), [userId]);
  return (
    <Page
      title={user.value?.displayname ?? userId}
      about={userId}
      up={{ href: addressOf('users'), text: 'Users' }}
    >
      <WhenLoaded loaded={user}>
        {(found) => (
          <>
            <Section title="Account">
              <Account user={found} />
              <UserActions user={found} onDone={user.reload} />
              <p>
                <a href={addressOf('media', userId)}>Uploaded files</a>
              </p>
            </Section>
            <UserDevices userId={userId} key={String(found.deactivated)} />
            <UserRooms userId={userId} address={address} />
            <UserPushers userId={userId} />
            <UserAccountData userId={userId} />
          </>
        )}
      </WhenLoaded>
    </Page>
  );
}

function Account({ user }: { readonly user: UserDetails }) {
  const addresses = user.threepids.map(({ address }) => address).join(', ');
  const logins = user.external_ids.map((id) => `${id.auth_provider}: ${id.external_id}`).join(', ');
  const isPlain = !(user.admin || user.is_guest || user.deactivated || user.locked || user.suspended);
  return (
    <Facts
      facts={[
        ['User id', <code key="id">{user.name}</code>],
        ['State', isPlain && !user.shadow_banned ? 'Active' : <UserBadges user={user} />],
        ['Registered', <Time key="at" at={user.creation_ts * 1000} />],
        ['Last seen', <Ago key="seen" at={user.last_seen_ts} />],
        ['Addresses', addresses === '' ? undefined : addresses],
        ['Single sign-on', logins === '' ? undefined : logins],
        ['Application service', user.appservice_id ?? undefined],
      ]}
    />
  );
}
