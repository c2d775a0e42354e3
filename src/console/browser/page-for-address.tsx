import type { VNode } from 'preact';
import { Empty, Page } from './components/layout.tsx';
import { AuditLogPage } from './pages/audit-log.tsx';
import { ConfigurationPage } from './pages/configuration.tsx';
import { DestinationPage } from './pages/destination.tsx';
import { FederationPage } from './pages/federation.tsx';
import { MediaPage } from './pages/media.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { RegistrationTokensPage } from './pages/registration-tokens.tsx';
import { ReportPage } from './pages/report.tsx';
import { ReportsPage } from './pages/reports.tsx';
import { RoomPage } from './pages/room.tsx';
import { RoomsPage } from './pages/rooms.tsx';
import { ServerNoticesPage } from './pages/server-notices.tsx';
import { StatisticsPage } from './pages/statistics.tsx';
import { TasksPage } from './pages/tasks.tsx';
import { UserPage } from './pages/user.tsx';
import { UserMediaPage } from './pages/user-media.tsx';
import { UsersPage } from './pages/users.tsx';
import type { PageAddress } from './shell/route.ts';

type Maker = (address: PageAddress) => VNode;

/** Pages without an id, by their names. */
const pagesWithoutId: Readonly<Record<string, Maker>> = {
  '': () => <OverviewPage />,
  users: (address) => <UsersPage address={address} />,
  'server-notices': () => <ServerNoticesPage />,
  reports: (address) => <ReportsPage address={address} />,
  media: (address) => <MediaPage address={address} />,
  jobs: (address) => <TasksPage address={address} />,
  statistics: (address) => <StatisticsPage address={address} />,
  configuration: (address) => <ConfigurationPage address={address} />,
  'audit-log': (address) => <AuditLogPage address={address} />,
  rooms: (address) => <RoomsPage address={address} />,
  'registration-tokens': () => <RegistrationTokensPage />,
  federation: (address) => <FederationPage address={address} />,
};

/** Pages about one user, room, report or server, by their names. */
const pagesWithId: Readonly<Record<string, (id: string, address: PageAddress) => VNode>> = {
  user: (id, address) => <UserPage userId={id} address={address} />,
  room: (id) => <RoomPage roomId={id} />,
  report: (id) => <ReportPage id={id} />,
  media: (id, address) => <UserMediaPage userId={id} address={address} />,
  destination: (id, address) => <DestinationPage name={id} address={address} />,
};

/** Returns the page that an address names. */
export function pageFor(address: PageAddress): VNode {
  const { page, id } = address;
  if (id === undefined && Object.hasOwn(pagesWithoutId, page)) return pagesWithoutId[page]!(address);
  if (id !== undefined && Object.hasOwn(pagesWithId, page)) return pagesWithId[page]!(id, address);
  return (
    <Page title="Not found">
      <Empty>The console has no such page.</Empty>
    </Page>
  );
}
