/** The page at `/`, complete in itself. */
export function welcomePage({
  serverName,
  openRegistration,
}: {
  readonly serverName: string;
  readonly openRegistration: boolean;
}): string {
  const name = escapeHtml(serverName);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${name} &middot; Hearth</title>
<style>${style}</style>
<main>
  <p class="flame" aria-hidden="true">&#x1F525;</p>
  <h1>The fire is lit.</h1>
  <p>This is <strong>${name}</strong>, a homeserver that runs Hearth and speaks the Matrix protocol.</p>
  <h2>What to do next</h2>
  <ol>
    <li>${accountAdvice(openRegistration)}</li>
    <li>Open any Matrix client, choose <em>other homeserver</em> and enter the address of this page.</li>
    <li>Make a room, invite somebody, and talk.</li>
  </ol>
</main>
</html>
`;
}

function accountAdvice(openRegistration: boolean): string {
  const command = '<code>npm run hearth -- register-user --admin</code>';
  return openRegistration
    ? `Register an account with your client, or make an administrator on the server: ${command}`
    : `Make the first account on the server: ${command}`;
}

const style = `
:root { color-scheme: light dark; --glow: #d9480f; --text: #2b2118; --back: #fffaf5; --edge: #f1dfd0 }
@media (prefers-color-scheme: dark) { :root { --glow: #ff922b; --text: #f3e9e0; --back: #1a1512; --edge: #3a2c22 } }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--back);
  color: var(--text); font: 1.05rem/1.6 system-ui, sans-serif }
main { max-width: 34rem; padding: 2rem }
.flame { font-size: 3rem; margin: 0 }
h1 { margin: 0; font-weight: 650; letter-spacing: -.02em; color: var(--glow) }
h2 { font-size: 1rem; margin: 2rem 0 .5rem }
ol { padding-left: 1.2rem; margin: 0 }
li { margin: .5rem 0 }
code { display: inline-block; padding: .1rem .5rem; border: 1px solid var(--edge); border-radius: .4rem;
  font-size: .9em; overflow-wrap: anywhere }
`;

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (character) => entities[character]!);
