/** What a browser sees at `/`. */
export { type WelcomeOptions, welcomeRoute } from './routes.ts';
