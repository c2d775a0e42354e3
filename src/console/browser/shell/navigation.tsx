import { addressOf } from './route.ts';

/**
 * The pages of the menu by group. `below` names pages that have no entry themselves: while one of them is shown, the
 * menu marks this entry.
 */
const groups: readonly {
  readonly title: string;
  readonly pages: readonly (readonly [page: string, text: string, ...below: string[]])[];
}[] = [
  { title: 'Server', pages: [['', 'Overview']] },
  {
    title: 'Accounts',
    pages: [
      ['users', 'Users', 'user'],
      ['registration-tokens', 'Registration tokens'],
      ['server-notices', 'Server notices'],
    ],
  },
  {
    title: 'Content',
    pages: [
      ['reports', 'Reports', 'report'],
      ['rooms', 'Rooms', 'room'],
      ['media', 'Media'],
    ],
  },
  {
    title: 'Operation',
    pages: [
      ['federation', 'Federation', 'destination'],
      ['jobs', 'Background jobs'],
      ['statistics', 'Statistics'],
      ['configuration', 'Configuration'],
      ['audit-log', 'Audit log'],
    ],
  },
];

interface NavigationProps {
  readonly page: string;
  readonly serverName: string;
  readonly userId: string;
  /** Whether the menu is open in a narrow window. */
  readonly isOpen: boolean;
  readonly toggle: () => void;
  readonly signOut: () => void;
}

/** The menu with links to all pages, and a button to sign out. */
export function Navigation({ page, serverName, userId, isOpen, toggle, signOut }: NavigationProps) {
  return (
    <header class="side">
      <div class="brand">
        <a href={addressOf('')}>
          <Flame />
          <span>
            <strong>Hearth</strong>
            <small>{serverName}</small>
          </span>
        </a>
        <button type="button" class="menu" aria-expanded={isOpen} aria-controls="menu" onClick={toggle}>
          Menu
        </button>
      </div>
      <div id="menu" class={isOpen ? 'open' : undefined}>
        <nav aria-label="Pages of the console">
          {groups.map(({ title, pages }) => (
            <section key={title}>
              <h2>{title}</h2>
              <ul>
                {pages.map(([name, text, ...below]) => (
                  <li key={name}>
                    <a
                      href={addressOf(name)}
                      aria-current={name === page ? 'page' : below.includes(page) ? 'true' : undefined}
                    >
                      {text}
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </nav>
        <div class="account">
          <span title={userId}>{userId}</span>
          <button type="button" onClick={signOut}>
            Sign out
          </button>
        </div>
      </div>
    </header>
  );
}

export function Flame() {
  return (
    <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <path fill="currentColor" d="M16 2c1 6 8 9 8 17a8 8 0 0 1-16 0c0-4 2-6 4-9 1 3 2 4 3 4 0-5-1-8 1-12z" />
    </svg>
  );
}
